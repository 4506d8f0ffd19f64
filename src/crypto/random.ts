/** Returns `length` unpredictable bytes. Only tests inject another implementation. */
export type RandomBytes = (length: number) => Uint8Array

/** The platform's CSPRNG. */
export const randomBytes: RandomBytes = (length) => crypto.getRandomValues(new Uint8Array(length))
