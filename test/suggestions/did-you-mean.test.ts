import { expect, test } from 'vitest'
import { didYouMean, withSuggestion } from '../../src/suggestions/did-you-mean.ts'

const NAMES = ['orders', 'customers', 'search']

test.each([
  ['ordres', 'did you mean "orders"?'],
  ['Orders', 'did you mean "orders"?'],
  ['order', 'did you mean "orders"?'],
  ['invoices', undefined],
  ['', undefined],
])('the suggestion for %j is %j', (given, suggestion) => {
  expect(didYouMean(given, NAMES)).toBe(suggestion)
})

test('a message gets a suggestion only if a known name is similar', () => {
  expect(withSuggestion('unknown name', 'ordres', NAMES)).toBe(
    'unknown name; did you mean "orders"?',
  )
  expect(withSuggestion('unknown name', 'invoices', NAMES)).toBe('unknown name')
})
