/**
 * Our gateway as it ships, with limits that are never reached, and a bare proxy on the same
 * runtime.
 */
import { layerOf } from '../layers/layers.ts'
import { bundleOnce, LAYERS_CONFIG } from '../stack/bundle.ts'
import { startLayers } from '../stack/gateway.ts'
import type { Grounds, Peer, Running } from './peer.ts'

/** The minimum work of a proxy on this runtime. */
export const passthrough: Peer = {
  id: 'passthrough',
  title: 'passthrough (workerd)',
  optional: false,
  inQuick: true,
  compiles: true,
  refuses: {},
  identifies: false,
  redisCalls: [0, 0],
  does: { cachesTokens: '-', revokes: 'no', limit: 'no', audit: 'no', identity: 'no' },
  start: (grounds) => start('passthrough', grounds),
}

export const ours: Peer = {
  id: 'portcullis',
  title: 'Portcullis',
  optional: false,
  inQuick: true,
  compiles: true,
  refuses: {
    missing: 401,
    forged: 401,
    expired: 401,
    revoked: 401,
    powerless: 403,
    'bad-query': 422,
    ambiguous: 400,
  },
  identifies: true,
  redisCalls: [1, 1],
  does: {
    cachesTokens: 'yes',
    revokes: 'yes',
    limit: 'in Redis',
    audit: 'yes',
    identity: 'identity headers, signed assertion',
  },
  start: (grounds) => start('full', grounds),
}

async function start(id: string, grounds: Grounds): Promise<Running> {
  const { backends, signingKeys, directory, bundles } = grounds
  const layer = layerOf(id)
  const bundle = await bundleOnce(LAYERS_CONFIG, bundles)
  const target = await startLayers({ bundle, backends, signingKeys, layers: [layer], directory })
  return {
    url: target.urlOf(layer),
    pid: target.pidOf(layer),
    version: 'workerd',
    close: target.close,
  }
}
