/** The commands that examine share most of their modules, so they are loaded as one file. */
export { examine as examineGateway } from './doctor/examine.ts'
export { examine as examineProvider } from './idp/examine.ts'
