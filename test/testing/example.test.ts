/** Runs the tests of the example. */
import '../../examples/testing/app.test.ts'
import '../../examples/testing/policy.test.ts'
