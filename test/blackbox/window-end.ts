/** Waits for a new window of a minute if less than `atLeastMs` of the current one is left. */
export async function awayFromWindowEnd(atLeastMs = 10_000): Promise<void> {
  const leftMs = 60_000 - (Date.now() % 60_000)
  if (leftMs < atLeastMs) await new Promise((done) => setTimeout(done, leftMs + 100))
}
