package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// crew is the workers, each a process of its own. One that dies is replaced.
type crew struct {
	broker string
	pace   time.Duration
	say    func(format string, args ...any)
	gone   sync.WaitGroup // of the goroutines that wait for a process

	mu     sync.Mutex
	hired  int
	closed bool
	at     map[string]*hand
}

// hand is one process. It ends when its standard input does, so also with this one.
type hand struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

func hire(n int, broker string, pace time.Duration, say func(string, ...any)) (*crew, error) {
	c := &crew{broker: broker, pace: pace, say: say, at: make(map[string]*hand)}
	for range n {
		if err := c.add(); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// add starts one more worker.
func (c *crew) add() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.hired++
	name := fmt.Sprintf("worker-%d", c.hired)
	cmd := exec.Command(program, "-worker", name, "-broker", c.broker, "-pace", c.pace.String())
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.at[name] = &hand{cmd, stdin}
	c.say("%s is process %d: kill -9 %d", name, cmd.Process.Pid, cmd.Process.Pid)
	c.gone.Go(func() { c.wait(name, cmd) }) // ends with the process
	return nil
}

// wait replaces the worker when it has ended.
func (c *crew) wait(name string, cmd *exec.Cmd) {
	err := cmd.Wait()
	c.mu.Lock()
	delete(c.at, name)
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return
	}
	c.say("%s has ended: %v", name, err)
	time.Sleep(100 * time.Millisecond) // one that cannot start is not started all the time
	if err := c.add(); err != nil {
		c.say("no other worker: %v", err)
	}
}

// kill ends a worker without a warning.
func (c *crew) kill(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.at[name]
	if h == nil {
		return fmt.Errorf("there is no %q", name)
	}
	return h.cmd.Process.Kill()
}

// close ends all and waits for them.
func (c *crew) close() {
	c.mu.Lock()
	c.closed = true
	for _, h := range c.at {
		_ = h.stdin.Close()
	}
	c.mu.Unlock()
	c.gone.Wait()
}
