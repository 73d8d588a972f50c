# Completion for takeback in fish. Put this file into ~/.config/fish/completions/takeback.fish, or add to
# ~/.config/fish/config.fish:
#     takeback completions fish | source

function __takeback_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l word (commandline --current-token --cut-at-cursor)
    takeback complete -- $words[2..] "$word" 2>/dev/null
end

complete --command takeback --no-files --keep-order --arguments '(__takeback_complete)'
