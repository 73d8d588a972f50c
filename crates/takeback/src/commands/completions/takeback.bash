# Completion for takeback in bash 4.4 or later. Put this file into
# ~/.local/share/bash-completion/completions/takeback, or add to ~/.bashrc:
#     source <(takeback completions bash)

_takeback() {
    # bash breaks words at : = and @, which are parts of takeback's. Join what has no space between.
    local line=${COMP_LINE:0:COMP_POINT} rest=() words=() i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        if [[ $i == 0 || $line == [[:space:]]* ]]; then
            words+=("")
            line=${line#"${line%%[![:space:]]*}"}
        fi
        local piece=${COMP_WORDS[i]}
        if ((i == COMP_CWORD)); then
            piece=$line
        fi
        words[${#words[@]} - 1]+=$piece
        line=${line#"$piece"}
    done

    # Without quotes, as takeback would get it.
    local word=${words[${#words[@]} - 1]} quote=
    if [[ $word == [\'\"]* ]]; then
        quote=${word:0:1}
        word=${word:1}
    fi
    word=${word//\\/}
    rest=("${words[@]:1:${#words[@]}-2}")
    rest=("${rest[@]//[\\\"\']/}")

    # What readline does not replace: it only sees the part after the last break.
    local typed=${words[${#words[@]} - 1]} before=
    if [[ -z $quote ]]; then
        before=${typed%"$2"}
    fi

    local reply
    COMPREPLY=()
    while IFS= read -r reply; do
        reply=${reply%%$'\t'*}
        if [[ -z $quote ]]; then
            local quoted
            printf -v quoted %q "$reply"
            # A leading ~ stands for the home folder.
            reply=${quoted/#\\~/\~}
        fi
        COMPREPLY+=("${reply#"$before"}")
    done < <(takeback complete -- "${rest[@]}" "$word" 2>/dev/null)

    # A folder, a point before a path, or an option before its value goes on without a space.
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[/:=.] ]]; then
        compopt -o nospace
    fi
}

complete -o nosort -F _takeback takeback
