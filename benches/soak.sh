#!/usr/bin/env bash
# Works the window for a while, as a person in a hurry would, and prints its memory: it must stay level, and every picture
# must follow what was done.
#
#     cargo build --release && benches/soak.sh [MINUTES [PROGRAM]]
#
# Needs Xvfb, xdotool and ImageMagick. Opens the samples in turn by the File menu, brushes, zooms, switches tabs, closes, opens
# again. Of the memory, what the program has allocated is printed too: the rest is the program file and its libraries.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-20}
program=${2:-target/release/vramscope}

folder=$(mktemp -d)
exec 3< <(exec Xvfb -displayfd 1 -screen 0 1280x860x24 -nolisten tcp -noreset 2>/dev/null)
server=$!
read -r number <&3
export DISPLAY=:$number HOME=$folder XDG_RUNTIME_DIR=$folder LIBGL_ALWAYS_SOFTWARE=1
"$program" >"$folder/log" 2>&1 &
window=$!
trap 'kill $window $server 2>/dev/null; rm -rf "$folder"' EXIT
id=$(timeout 60 xdotool search --sync --onlyvisible --name vramscope | head -1)
xdotool windowmove "$id" 0 0 windowsize "$id" 1280 860 windowfocus "$id"
sleep 2

picture() { import -window root rgb:- | md5sum; }
memory() {
  awk '/^VmRSS/ { all = $2 } /^RssAnon/ { own = $2 } END { printf "%d MiB, %d allocated", all / 1024, own / 1024 }' "/proc/$window/status"
}
click() { xdotool mousemove "$1" "$2" sleep 0.2 click 1 sleep 0.4; }
menu() { click 27 12 && click 60 "$1"; }
brush() {
  local from=$((260 + RANDOM % 200)) to=$((500 + RANDOM % 200))
  xdotool mousemove $from 180 mousedown 1 sleep 0.1 mousemove $((from + 20)) 180 sleep 0.05 mousemove $to 180 sleep 0.1 mouseup 1
}

end=$((SECONDS + minutes * 60)) rounds=0 lost=0
while [ $SECONDS -lt $end ]; do
  empty=$(picture)
  menu $((rounds % 2 ? 151 : 126)) # one sample, then the other
  sleep 4
  [ "$(picture)" != "$empty" ] || { lost=$((lost + 1)) && echo "nothing opened in round $rounds"; }
  for turn in 1 2 3 4 5 6; do
    brush && sleep 0.5
    for tab in 1 2 3 4 5 6 7; do
      before=$(picture)
      xdotool key $tab sleep 0.4
      [ $tab = 1 ] || [ "$(picture)" != "$before" ] || { lost=$((lost + 1)) && echo "tab $tab was not drawn in round $rounds"; }
    done
    xdotool mousemove 500 180 click --repeat 3 4 sleep 0.2 click --repeat 3 5 key f sleep 0.2 key Home sleep 0.2 key g sleep 0.2 key p
    xdotool key bracketright key bracketright key bracketleft key Escape key ctrl+z sleep 0.3
  done
  menu 237 # Close all
  sleep 1
  rounds=$((rounds + 1))
  echo "$((SECONDS / 60)) min, round $rounds: $(memory)"
done
echo "$rounds rounds, $lost pictures that did not follow"
[ $lost = 0 ]
