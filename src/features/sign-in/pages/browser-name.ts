/** The browser and the system of a `User-Agent` header, in the words that people know. */

/** The first that matches. Chrome is in the header of most, and Safari in that of Chrome. */
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\b(?:OPR|Opera)\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bVivaldi\//, 'Vivaldi'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Chrome|CriOS|Chromium|HeadlessChrome)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
  [/^curl\//, 'curl'],
]

/** An iPad that asks for desktop pages calls itself a Mac. */
const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bWindows NT\b/, 'Windows'],
  [/\bMac OS X\b/, 'Mac'],
  [/\bLinux\b/, 'Linux'],
]

const firstIn = (names: typeof BROWSERS, text: string): string | undefined =>
  names.find(([pattern]) => pattern.test(text))?.[1]

/**
 * Returns the browser and the system that the header names. A client can send any header, so they prove nothing.
 * Undefined: not known.
 */
export function identifyBrowser(userAgent: string | undefined): {
  readonly browser: string | undefined
  readonly system: string | undefined
} {
  const text = userAgent ?? ''
  return { browser: firstIn(BROWSERS, text), system: firstIn(SYSTEMS, text) }
}

/** Returns a name such as `Firefox on Windows`. What is not known has a general name. */
export function describeBrowser(userAgent: string | undefined): string {
  const { browser, system } = identifyBrowser(userAgent)
  if (browser === undefined)
    return system === undefined ? 'Unknown browser' : `Browser on ${system}`
  return system === undefined ? browser : `${browser} on ${system}`
}
