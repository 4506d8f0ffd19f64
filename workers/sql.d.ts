/** Declares `.sql` imports, which Wrangler bundles as text. */
declare module '*.sql' {
  const text: string
  export default text
}
