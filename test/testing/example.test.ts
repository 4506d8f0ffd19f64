/** Runs the tests of the example. */
import '../../examples/testing/policy.test.ts'
