/** A response that is not a reply of Redis: the request was refused, or Redis is unreachable. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: number

  /**
   * @param status HTTP status of the response
   * @param message text of the `error` field, which begins with a Redis error prefix
   */
  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.status = status
  }
}
