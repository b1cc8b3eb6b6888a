#!/usr/bin/env bash
# Makes fuzz/corpus/ from the samples and fixtures, and from a folder of recordings when one is given.
#
#     fuzz/seed.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")"

# Longer inputs make the fuzzer slow; a cut file is a fair input too.
max_bytes=65536

add() { # TARGET FILE
  local target=$1 file=$2 name
  name=$(printf '%s' "${file#../}" | tr -c 'A-Za-z0-9.\n' _ | tail -c 80)
  mkdir -p "corpus/$target"
  # The reader that has enough closes the pipe.
  { zcat -f "$file" 2>/dev/null || true; } | head -c "$max_bytes" >"corpus/$target/$name"
}

roots=(../samples ../tests/fixtures seeds "$@")
while IFS= read -r file; do
  case $(basename "$file") in
    *.py | truth* | expected.json) continue ;;
    *.pickle*) target=snapshot ;;
    *summary*) target=memory_summary ;;
    *pyspy* | *py-spy* | *speedscope*) target=py_spy ;;
    *trace*.json* | torch-*) target=trace ;;
    *nvidia-smi* | gpu* | dmon* | pmon* | smi*) target=nvidia_smi ;;
    *) target=training_log ;;
  esac
  add "$target" "$file"
  add detection "$file"
done < <(find "${roots[@]}" -type f 2>/dev/null | sort)

# Several files of one run, joined as the target `session` parts them.
mkdir -p corpus/session
cp corpus/snapshot/* corpus/session/
pick() { # TARGET NUMBER
  find "corpus/$1" -type f -size -40k | sort | awk -v n="$2" '{ all[NR] = $0 } END { print all[n % NR + 1] }'
}
number=0
for log in corpus/training_log/*; do
  number=$((number + 1))
  for kind in snapshot trace; do
    { cat "$(pick "$kind" $number)" && printf '\n%%%%%%%%\n' && cat "$log" &&
      printf '\n%%%%%%%%\n' && cat "$(pick nvidia_smi $number)"; } >"corpus/session/$kind-$number"
  done
done
du -sh corpus/*
