/** A person who uses a page with the keyboard only. */
import type { Page } from './chromium.ts'

/** A page of the console has fewer places that Tab reaches. */
const MAX_TABS = 400
const CODES: Readonly<Record<string, number>> = { Tab: 9, Enter: 13, Space: 32 }

export interface Keyboard {
  /** Presses Tab until the element has the focus whose name or label contains `name`. */
  tabTo(name: string): Promise<void>
  type(text: string): Promise<void>
  /** Presses Enter. With `loads`, waits for the page that follows. */
  enter(options?: { readonly loads?: boolean }): Promise<void>
}

/** The name of the focused element, as a screen reader says it. */
const FOCUSED = `(() => {
  const { activeElement: at } = document
  const labels = [...(at.labels ?? [])].map(({ textContent }) => textContent)
  return at.getAttribute('aria-label') ?? [...labels, at.textContent].join(' ')
})()`

export function keyboardOf(page: Page): Keyboard {
  const loads = () => page.events.filter(({ method }) => method === 'Page.loadEventFired').length

  async function press(key: string, text?: string) {
    const code = { key, code: key, windowsVirtualKeyCode: CODES[key], ...(text && { text }) }
    await page.send('Input.dispatchKeyEvent', { type: 'keyDown', ...code })
    await page.send('Input.dispatchKeyEvent', { type: 'keyUp', key, code: key })
  }

  return {
    async tabTo(name) {
      for (let tab = 0; tab < MAX_TABS; tab += 1) {
        await press('Tab')
        if ((await page.evaluate<string>(FOCUSED)).includes(name)) return
      }
      throw new Error(`Tab does not reach "${name}" at ${await page.evaluate('location.href')}`)
    },
    async type(text) {
      await page.send('Input.insertText', { text })
    },
    async enter({ loads: waits = false } = {}) {
      const before = loads()
      await press('Enter', '\r')
      while (waits && loads() === before) await new Promise((done) => setTimeout(done, 20))
    },
  }
}
