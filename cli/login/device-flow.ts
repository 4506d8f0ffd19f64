/** Login on another device (RFC 8628), for machines without a browser. */
import { setTimeout as wait } from 'node:timers/promises'
import * as oauth from 'oauth4webapi'
import { refused, undecided } from '../failure.ts'
import { visible } from '../text.ts'
import { failureOf, loginOf, type Server } from './server.ts'
import type { Login } from './store.ts'

const DEFAULT_INTERVAL_SECONDS = 5
/** RFC 8628 section 3.5. */
const SLOW_DOWN_SECONDS = 5
const MAX_SECONDS = 1_800

export interface DeviceOptions {
  readonly scope: string
  readonly resource: string | undefined
  readonly print: (text: string) => void
}

/** Resolves to the login. Throws a `Failure` if the person refuses, or the code expires. */
export async function logInByDevice(server: Server, options: DeviceOptions): Promise<Login> {
  const { metadata, client } = server
  const { scope, resource, print } = options
  if (metadata.device_authorization_endpoint === undefined)
    throw refused(
      'no_device_endpoint',
      `${visible(metadata.issuer)} offers no login by device code; leave out --device`,
    )
  try {
    const parameters = { scope, ...(resource !== undefined && { resource }) }
    const asked = await oauth.deviceAuthorizationRequest(
      metadata,
      client,
      oauth.None(),
      parameters,
      server.options,
    )
    const device = await oauth.processDeviceAuthorizationResponse(metadata, client, asked)
    print(
      `Open ${visible(device.verification_uri)} on any device, and enter the code ${visible(device.user_code)}`,
    )
    let seconds = Math.max(1, device.interval ?? DEFAULT_INTERVAL_SECONDS)
    const deadline = Date.now() + Math.min(device.expires_in, MAX_SECONDS) * 1_000
    while (Date.now() < deadline) {
      await wait(seconds * 1_000)
      const response = await oauth.deviceCodeGrantRequest(
        metadata,
        client,
        oauth.None(),
        device.device_code,
        server.options,
      )
      try {
        const tokens = await oauth.processDeviceCodeResponse(metadata, client, response)
        return loginOf(server, tokens, { resource })
      } catch (error) {
        const code = error instanceof oauth.ResponseBodyError ? error.error : undefined
        if (code === 'slow_down') seconds += SLOW_DOWN_SECONDS
        else if (code !== 'authorization_pending') throw error
      }
    }
  } catch (error) {
    throw failureOf(error, metadata.issuer)
  }
  throw undecided('login_timeout', 'the code has expired; log in again')
}
