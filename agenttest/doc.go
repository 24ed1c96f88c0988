// Package agenttest is for the tests of those who build on the kernel: harness authors and
// the authors of model adapters. It imports the standard library and the kernel only.
//
// [Script] is a model that plays prepared answers:
//
//	model := agenttest.Script(agenttest.Calls("a", "b"), agenttest.Text("ok"))
//
// [CheckEvents] and [CheckRun] prove that a recorded stream keeps the kernel's contract,
// [Checker] does so as a listener while the run goes on. [Run], [Format], [Trace] and
// [Golden] turn a run into a text that a test keeps in a file. [TestModel] is the suite
// that an adapter has to pass.
package agenttest
