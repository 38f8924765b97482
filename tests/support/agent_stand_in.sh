# A stand-in for the command line of an agent: STREAM REFUSAL [the words of the agent].
# To the prompt `echo X` it prints STREAM with X for `pong`, to any other one REFUSAL, and fails.
# STAND_IN_STREAM names a file that it prints in any case, with STAND_IN_SAYS on standard error and
# the exit code STAND_IN_EXIT; STAND_IN_EVENTS a file of more events; STAND_IN_SEEN a folder for
# what it sees.
stream=$1 refusal=$2
shift 2
if [ -n "$STAND_IN_SEEN" ]; then
    printf '%s\0' "$@" > "$STAND_IN_SEEN/words"
    env -0 > "$STAND_IN_SEEN/environment"
    pwd > "$STAND_IN_SEEN/cwd"
    cat > "$STAND_IN_SEEN/prompt"
    exec cat "$stream"
fi
read -r prompt
[ -z "$STAND_IN_EVENTS" ] || cp "$STAND_IN_EVENTS" "$COPILOT_OTEL_FILE_EXPORTER_PATH"
if [ -n "$STAND_IN_STREAM" ]; then
    cat "$STAND_IN_STREAM"
    printf %s "$STAND_IN_SAYS" >&2
    exit "$STAND_IN_EXIT"
fi
case $prompt in
    "echo "*) sed "s/pong/${prompt#echo }/g" "$stream" ;;
    *) cat "$refusal"; exit 1 ;;
esac
