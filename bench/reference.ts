/** What five other systems say of themselves. Other machines, other languages: for orientation. */

export interface ReferenceFigure {
  /** Id of the layer that does the same kind of work. */
  readonly layer: string
  readonly system: string
  readonly says: string
}

export const REFERENCE_NOTE =
  'Figures that other systems state of themselves, on other machines and in other languages: for ' +
  'orientation only. What counts here is the ratio to the baseline of the same run.'

export const REFERENCE_FIGURES: readonly ReferenceFigure[] = [
  {
    layer: 'passthrough',
    system: 'SpaceTime VR secured HTTP API (Godot)',
    says: 'baseline 2.5 ms a request',
  },
  {
    layer: 'auth-cold',
    system: 'Identity V2 (Go)',
    says: 'RS256 verification alone 56.3 us, 21,742/s a core',
  },
  {
    layer: 'auth-cold',
    system: 'Subzero zero-trust gateway (Python)',
    says: '80 % cached: p50 5.2 ms, p95 156 ms',
  },
  {
    layer: 'auth-cached',
    system: 'Subzero zero-trust gateway (Python)',
    says: 'cached: p50 2.1 ms, p95 4.3 ms, p99 6.8 ms',
  },
  {
    layer: 'auth-cached',
    system: 'SpaceTime VR secured HTTP API (Godot)',
    says: '+0.8 ms on 2.5 ms',
  },
  {
    layer: 'admit',
    system: 'SpaceTime VR secured HTTP API (Godot)',
    says: 'limits +0.3 ms, in memory',
  },
  {
    layer: 'admit',
    system: 'Catalytic authentication framework (Python)',
    says: 'revocation in Redis, 1,000 users: 389 req/s, p50 14 ms, p95 180 ms, p99 2,100 ms',
  },
  {
    layer: 'authorize',
    system: 'SpaceTime VR secured HTTP API (Godot)',
    says: 'roles +0.6 ms',
  },
  {
    layer: 'authorize',
    system: 'Subzero zero-trust gateway (Python)',
    says: 'relations: p50 1.8 ms, p95 3.2 ms, p99 12.4 ms',
  },
  {
    layer: 'validate',
    system: 'SpaceTime VR secured HTTP API (Godot)',
    says: 'validation +0.5 ms',
  },
  {
    layer: 'validate',
    system: 'Ramparts proxy (Rust)',
    says: 'cached validation 1.3 ms, a block under 5 ms',
  },
  {
    layer: 'full',
    system: 'SpaceTime VR secured HTTP API (Godot)',
    says: '+2.2 ms on 2.5 ms (1.88 times the baseline); above 1,000 req/s sustained, p99 24.3 ms',
  },
  {
    layer: 'full',
    system: 'Subzero zero-trust gateway (Python)',
    says: 'full stack: 237 req/s, p50 8.4 ms, p95 168 ms',
  },
  {
    layer: 'full',
    system: 'Ramparts proxy (Rust)',
    says: '1,330 req/s at best, flat from 10 to 300 connections',
  },
]
