/**
 * An answer that is not a reply of Redis: the request was refused, or Redis could not be reached.
 */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: number

  /**
   * @param status HTTP status of the answer
   * @param message what the `error` field says, beginning with a Redis error prefix
   */
  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.status = status
  }
}
