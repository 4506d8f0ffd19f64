/** True in workerd, on Cloudflare or on this machine. */
export const IS_WORKERS =
  typeof navigator !== 'undefined' && navigator.userAgent === 'Cloudflare-Workers'
