// The file in which `@upstash/redis` 1.39 has its HTTP client. Its name changes with the version.
export {
  error_exports as errors,
  HttpClient,
} from '../../node_modules/@upstash/redis/chunk-4WQYU7T6.mjs'
