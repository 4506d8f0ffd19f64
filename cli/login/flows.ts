/** What the commands about logins load late: OAuth costs each start of the command line time. */
export { logInByBrowser } from './browser-flow.ts'
export { logInByDevice } from './device-flow.ts'
export { accessTokenFor, endLogin } from './renewal.ts'
export { discover } from './server.ts'
export { alone, saveLogin } from './store.ts'
