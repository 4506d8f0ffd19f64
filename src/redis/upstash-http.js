// The file in which `@upstash/redis` 1.39 has its HTTP client. Another version has another name for it.
export {
  error_exports as errors,
  HttpClient,
} from '../../node_modules/@upstash/redis/chunk-4WQYU7T6.mjs'
