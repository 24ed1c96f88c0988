package jetstream

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// EmbeddedConfig is how a broker within the process is run. The zero value is good for most.
type EmbeddedConfig struct {
	// Listen is the address at which other processes may connect, such as "127.0.0.1:4222"; port 0
	// is any. Empty means that none can: nothing listens. Nobody is asked for a name or a key,
	// so an address that others can reach is for networks that are closed.
	Listen string
	// MaxBytes bounds all streams together on disk. Zero is what the disk has.
	MaxBytes int64
	// MaxPayload bounds one record. Zero means 8 MiB.
	MaxPayload int
	// SyncAlways makes every write reach the disk before it is acknowledged. Without it an
	// acknowledged write survives the end of the process, not that of the machine.
	SyncAlways bool
}

// Broker is a NATS server within the process, with JetStream on disk.
type Broker struct{ server *server.Server }

// StartEmbedded starts a broker that keeps its streams below dir. One process at a time may use
// a dir. It returns once the broker answers.
func StartEmbedded(dir string, cfg EmbeddedConfig) (*Broker, error) {
	opts := &server.Options{
		ServerName: "embedded", StoreDir: dir, JetStream: true, JetStreamMaxStore: cfg.MaxBytes,
		NoLog: true, NoSigs: true, DontListen: true, MaxPayload: 8 << 20, SyncAlways: cfg.SyncAlways,
	}
	if dir == "" {
		return nil, errors.New("jetstream: an embedded broker needs a directory")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("jetstream: the broker's directory: %w", err)
	}
	if cfg.MaxPayload > 0 {
		opts.MaxPayload = int32(cfg.MaxPayload)
	}
	opts.MaxPending = max(64<<20, int64(opts.MaxPayload))
	if cfg.Listen != "" {
		host, port, err := net.SplitHostPort(cfg.Listen)
		if err != nil {
			return nil, fmt.Errorf("jetstream: Listen: %w", err)
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("jetstream: Listen: port %q is no number", port)
		}
		free, err := net.Listen("tcp", cfg.Listen) // the server itself would try for long
		if err != nil {
			return nil, fmt.Errorf("jetstream: Listen: %w", err)
		}
		_ = free.Close()
		opts.DontListen, opts.Host, opts.Port = false, host, int(n)
		if n == 0 {
			opts.Port = server.RANDOM_PORT
		}
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("jetstream: the broker does not start: %w", err)
	}
	go s.Start() // ends with Close, which waits for it
	b := &Broker{server: s}
	if !s.ReadyForConnections(30 * time.Second) {
		b.Close()
		return nil, fmt.Errorf("jetstream: the broker at %q in %s does not start", cfg.Listen, dir)
	}
	if !s.JetStreamEnabled() {
		b.Close()
		return nil, fmt.Errorf("jetstream: the broker cannot keep streams in %s", dir)
	}
	return b, nil
}

// URL is where other processes connect; empty where none can.
func (b *Broker) URL() string {
	if b.server.Addr() == nil {
		return ""
	}
	return b.server.ClientURL()
}

// Connect returns a connection from within the process. It is the caller's to close. Errors that
// belong to no call are told to nobody, unless an option says otherwise.
func (b *Broker) Connect(options ...nats.Option) (*nats.Conn, error) {
	silent := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
	return nats.Connect("", append([]nats.Option{silent, nats.InProcessServer(b.server)}, options...)...)
}

// Close ends the broker and waits until its files are closed.
func (b *Broker) Close() {
	b.server.Shutdown()
	b.server.WaitForShutdown()
}
