import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../src/features/environment.ts'
import { good, mistakes } from './environment.ts'

const SECRET = 'Bearer%20hush'
const traced = { ...good, OTLP_ENDPOINT: 'https://collector.example/otlp/' }

describe('access to the metrics', () => {
  test.each([
    [undefined, 'operators'],
    ['operators', 'operators'],
    ['public', 'public'],
  ])('the value %s means %s', (METRICS_ACCESS, access) => {
    const env = { ...good, ...(METRICS_ACCESS && { METRICS_ACCESS }) }
    expect(parseConfig(env).metricsAccess).toBe(access)
  })

  test.each(['', 'Public', 'everyone', ' public'])('%j is refused [R31]', (METRICS_ACCESS) => {
    const [mistake, ...others] = mistakes({ ...good, METRICS_ACCESS })
    expect(mistake).toMatch(/^METRICS_ACCESS: /)
    expect(others).toEqual([])
  })
})

describe('trace export', () => {
  test('is off without a collector', () => {
    expect(parseConfig({ ...good, OTLP_SAMPLE_RATIO: '0.5' }).traces).toBeUndefined()
  })

  test('uses a path below the endpoint, the configured headers, and samples every new trace', () => {
    expect(parseConfig(traced).traces).toEqual({
      url: 'https://collector.example/otlp/v1/traces',
      headers: {},
      sampleRatio: 1,
    })
    const OTLP_HEADERS = `authorization=${SECRET}, x-team = a%2Cb%3Dc`
    expect(parseConfig({ ...traced, OTLP_HEADERS }).traces?.headers).toEqual({
      authorization: 'Bearer hush',
      'x-team': 'a,b=c',
    })
  })

  test.each(['0', '1', '0.25', '.5', '1.0', '0.000001'])('samples a ratio of %s', (ratio) => {
    expect(parseConfig({ ...traced, OTLP_SAMPLE_RATIO: ratio }).traces?.sampleRatio).toBe(
      Number(ratio),
    )
  })

  test.each(['', '2', '1.1', '-0.1', 'half', '1e-3', '0x1', 'NaN', ' 1'])(
    'a ratio of %j is refused [R31]',
    (OTLP_SAMPLE_RATIO) => {
      expect(mistakes({ ...traced, OTLP_SAMPLE_RATIO })).toEqual([
        'OTLP_SAMPLE_RATIO: must be a number from 0 to 1',
      ])
    },
  )

  test.each([
    'hush',
    '=hush',
    'a b=hush',
    'authorization=hush%0d%0aX-Evil: 1',
    'authorization=%zz-hush',
    'a=hush,',
    'a=',
    'a=h%C3%BCsh',
  ])('headers %j are refused, and the error hides their values [R31]', (OTLP_HEADERS) => {
    const errors = mistakes({ ...traced, OTLP_HEADERS })
    expect(errors).toEqual([
      'OTLP_HEADERS: must be name=value pairs separated by commas, with percent-encoded values',
    ])
  })

  test.each(['collector.example', 'ftp://collector.example', 'https://collector.example/?a=b', ''])(
    'the endpoint %j is refused [R31]',
    (OTLP_ENDPOINT) => {
      expect(mistakes({ ...good, OTLP_ENDPOINT }).join()).toMatch(/^OTLP_ENDPOINT: /)
    },
  )
})
