/** The build of recheck that needs neither Java nor a program of the platform. */
declare module 'recheck/lib/browser.js' {
  import type * as recheck from 'recheck'

  const module: Pick<typeof recheck, 'checkSync'>
  export default module
}
