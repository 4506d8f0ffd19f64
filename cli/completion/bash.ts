/**
 * The completion script for bash. The script of `@bomb.sh/tab` is not used: it evaluates the words of
 * the line, so that `portcullis revoke subject "$(command)"` and the tab key run the command, and it
 * requires the package bash-completion. This one also works in the bash 3.2 of macOS.
 */

/** Returns the script. If there is no suggestion, bash completes names of files. */
export const bashScript = (name: string): string => `# bash completion for ${name}
_${name}() {
  local words value
  read -ra words <<< "\${COMP_LINE:0:COMP_POINT}"
  [[ \${COMP_LINE:0:COMP_POINT} == *' ' ]] && words+=('')
  COMPREPLY=()
  while IFS=$'\\t' read -r value _; do
    [[ $value == :* ]] || COMPREPLY+=("$value")
  done < <("$1" complete -- "\${words[@]:1}" 2> /dev/null)
}
complete -o default -F _${name} ${name}
`
