/** A running gateway that can be measured. */
import type { Backends } from './backends.ts'
import type { Layer } from './layers.ts'
import { PUBLIC_URL } from './tokens.ts'

export interface Target {
  /** Returns the URL of a layer: scheme, authority and first segment. */
  urlOf(layer: Pick<Layer, 'id' | 'stage'>): string
  /** The workerd process that runs the gateway. */
  readonly pid: number
  close(): Promise<void>
}

/** Returns the Worker's variables. */
export function gatewayVariables(
  { originUrl, redis }: Backends,
  signingKeys: string,
): Readonly<Record<string, string>> {
  return {
    UPSTASH_REDIS_REST_URL: redis.url,
    UPSTASH_REDIS_REST_TOKEN: redis.token,
    PUBLIC_URL,
    ORIGIN_URL: originUrl,
    SIGNING_KEYS: signingKeys,
  }
}
