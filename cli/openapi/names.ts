/** Names of constants. */

/** Words that cannot be names, and names that the module imports or that would hide a global. */
const RESERVED: ReadonlySet<string> = new Set([
  'Array',
  'Infinity',
  'NaN',
  'Number',
  'Object',
  'RegExp',
  'RouteDefinition',
  'String',
])

/** `order-item` and `order_item` become `OrderItem`. */
export function pascal(text: string): string {
  const words = text.normalize('NFKD').match(/[A-Za-z\d]+/g) ?? []
  const name = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
  return /^[A-Za-z]/.test(name) ? name : `_${name}`
}

/** Creates a function that returns a name once, and then the name with a number. */
export function createNames(reserved: Iterable<string> = RESERVED): (wanted: string) => string {
  const taken = new Set(reserved)
  return function unused(wanted) {
    let name = wanted
    for (let number = 2; taken.has(name); number += 1) name = `${wanted}${number}`
    taken.add(name)
    return name
  }
}
