#compdef takeback
# Completion for takeback in zsh. Put this file into a folder of $fpath as _takeback, or add to ~/.zshrc,
# after compinit:
#     source <(takeback completions zsh)

_takeback() {
    local -a before=("${(@Q)words[2,CURRENT-1]}") values=() shown=() open_values=() open_shown=()
    local reply value about
    for reply in "${(@f)$(takeback complete -- "${before[@]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        value=${reply%%$'\t'*}
        about=${reply#*$'\t'}
        [[ -n $value ]] || continue
        about=${value}${about:+  -- $about}
        # A folder, a point before a path, or an option before its value goes on without a space.
        if [[ $value == *[/:=] || $value == *.. ]]; then
            open_values+=("$value")
            open_shown+=("$about")
        else
            values+=("$value")
            shown+=("$about")
        fi
    done
    ((${#values} + ${#open_values})) || return 1
    compadd -V takeback -l -d shown -- "${values[@]}"
    compadd -V takeback-open -S '' -l -d open_shown -- "${open_values[@]}"
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _takeback "$@"
else
    compdef _takeback takeback
fi
