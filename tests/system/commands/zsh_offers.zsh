# zsh -f zsh_offers.zsh FOLDER ANSWER HOW LINE: what zsh offers at the end of LINE, one a line.
# A zsh in a terminal of its own completes; its `compadd` writes down what it is given. HOW: the
# script in FOLDER is found in $fpath (fpath), or executed (eval).
zmodload zsh/zpty
cat >$2.rc <<RC
PROMPT= RPS1=
[[ $3 = eval ]] || fpath=($1 \$fpath)
autoload -Uz compinit
compinit -u -D
[[ $3 = fpath ]] || eval "\$(<$1/_steelyard)"
compadd() {
    local -a offered
    local -i options=\${@[(i)(-|--)]}
    if ! (( \${@[1,options][(I)-*[ADO]*]} )); then
        builtin compadd -A offered "\$@"
        (( \$#offered )) && print -rl -- \$offered >>$2
    fi
    builtin compadd "\$@"
}
tell() {
    _main_complete
    compstate[insert]= compstate[list]=
    print >$2.end
}
zle -C tell complete-word tell
bindkey '^I' tell
print ready
RC
: >$2
zpty offers zsh -f -i
zpty -w offers "source $2.rc"
zpty -r -m offers said '*ready*' || exit 3
zpty -w -n offers "$4"$'\t'
for (( tries = 0; tries < 1200; tries++ )); do
    [[ -e $2.end ]] && break
    sleep 0.05
done
zpty -d offers
[[ -e $2.end ]] && cat $2
