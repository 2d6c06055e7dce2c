#!/usr/bin/env bash
# The front door as a stranger meets it: a clean copy built with a bare Python, and the wheel installed
# elsewhere; both have to write the same bytes. Needs the package index that pip is set up for.
set -uo pipefail
root=$(git -C "$(dirname "${BASH_SOURCE[0]}")" rev-parse --show-toplevel) || exit 1
unset VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONSAFEPATH

scratch=$(mktemp -d) || exit 1
trap 'rm -rf -- "$scratch"' EXIT
trap 'exit 130' INT TERM
copy="$scratch/a copy" # the space belongs to the check
workbooks=(
    gpu-finetune-memory-sizing.xlsx gpu-training-memory-sizing.xlsx gpu-full-finetune-sizing.xlsx
    gpu-inference-sizing.xlsx gpu-capacity-plan.xlsx
)
passed=0
failed=0

# check TITLE COMMAND...: counts one check; shows what the command printed if it fails.
check() {
    local title=$1
    shift
    if "$@" >"$scratch/log" 2>&1; then
        passed=$((passed + 1))
        echo "ok      $title"
    else
        failed=$((failed + 1))
        echo "FAILED  $title"
        sed 's/^/        /' "$scratch/log"
    fi
}

copy_checkout() {
    mkdir "$copy" && (cd "$root" && git ls-files -z | xargs -0 cp --parents -t "$copy")
}

help_leaves_nothing() {
    (cd "$copy" && python3 -S -I build.py --help && test ! -e .venv && test -z "$(find . -name __pycache__)")
}

build_from_copy() {
    (cd "$copy" && python3 build.py --output "$scratch/from the copy")
}

# whole FOLDER: all workbooks are there and are sound zip archives.
whole() {
    local name
    for name in "${workbooks[@]}"; do
        python3 -m zipfile -t "$1/$name" || return 1
    done
}

build_source_archive() {
    python3 -m venv "$scratch/tools" &&
        "$scratch/tools/bin/python" -m pip install -q hatchling &&
        (cd "$copy" && "$scratch/tools/bin/python" -m hatchling build -t sdist -d "$scratch/source")
}

# wheel_from SOURCE FOLDER
wheel_from() {
    "$scratch/tools/bin/python" -m pip wheel -q --no-deps -w "$2" "$1"
}

install_wheel() {
    python3 -m venv "$scratch/empty" && "$scratch/empty/bin/python" -m pip install -q "$scratch"/wheel/*.whl
}

build_from_wheel() {
    mkdir "$scratch/elsewhere" &&
        (cd "$scratch/elsewhere" && "$scratch/empty/bin/sizing-xlsx" build --output "$scratch/from the wheel")
}

same_workbooks() {
    local name
    for name in "${workbooks[@]}"; do
        cmp "$scratch/from the copy/$name" "$scratch/from the wheel/$name" || return 1
    done
}

check "copy of the tracked files" copy_checkout
check "help without packages leaves nothing behind" help_leaves_nothing
check "python3 build.py in the copy, bare Python" build_from_copy
check "all workbooks are there" whole "$scratch/from the copy"
check "a second run needs no installation" build_from_copy
check "source archive" build_source_archive
check "wheel from the copy" wheel_from "$copy" "$scratch/wheel"
check "wheel from the source archive" wheel_from "$(echo "$scratch"/source/*.tar.gz)" "$scratch/wheel2"
check "both wheels have the same bytes" cmp "$scratch"/wheel/*.whl "$scratch"/wheel2/*.whl
check "wheel into an empty environment" install_wheel
check "sizing-xlsx build in another folder" build_from_wheel
check "wheel and checkout write the same bytes" same_workbooks

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
