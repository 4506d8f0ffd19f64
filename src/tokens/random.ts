/** Unpredictable bytes. */

/** Makes so many bytes that nobody can predict; injected by tests only. */
export type RandomBytes = (length: number) => Uint8Array

/** The platform's CSPRNG. */
export const randomBytes: RandomBytes = (length) => crypto.getRandomValues(new Uint8Array(length))
