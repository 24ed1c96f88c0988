// Package browsertest drives the page of examples/web in a headless Chromium. It is a module
// of its own, so that the kernel's has no need of a browser:
//
//	go -C examples/web/browsertest test -count=1 .
//
// Without -count=1 the go command does not see that the page has changed.
// CHROMIUM names the browser, AGENTKERNEL_ARTIFACTS a folder in which the screenshots stay.
package browsertest
