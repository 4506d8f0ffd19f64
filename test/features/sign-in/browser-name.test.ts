/** Sessions have names that their user recognizes. */
import { expect, test } from 'vitest'
import { describeBrowser } from '../../../src/features/sign-in/pages/browser-name.ts'

const MAC = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)'
const WINDOWS = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64)'
const CHROME = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36'

const HEADERS: readonly [string, string | undefined][] = [
  ['Chrome on Windows', `${WINDOWS} ${CHROME}`],
  ['Edge on Windows', `${WINDOWS} ${CHROME} Edg/142.0.0.0`],
  ['Opera on Mac', `${MAC} ${CHROME} OPR/120.0.0.0`],
  ['Safari on Mac', `${MAC} AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Safari/605.1.15`],
  ['Firefox on Linux', 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0'],
  [
    'Safari on iPhone',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1',
  ],
  [
    'Chrome on iPad',
    'Mozilla/5.0 (iPad; CPU OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0 Mobile/15E148 Safari/604.1',
  ],
  [
    'Samsung Internet on Android',
    'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36',
  ],
  ['Chrome on ChromeOS', `Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ${CHROME}`],
  ['curl', 'curl/8.10.1'],
  ['Browser on Linux', 'Something (Linux)'],
  ['Unknown browser', '<script>alert(1)</script>'],
  ['Unknown browser', undefined],
]

test.each(HEADERS)('%s', (name, header) => {
  expect(describeBrowser(header)).toBe(name)
})
