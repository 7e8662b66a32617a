#!/bin/sh
# Pass every program of the corpus through Stan's compiler.
#   check_syntax.sh STANC [MODEL ...]
# STANC is the stanc binary, for instance the one inside the httpstan package.
stanc=$1
shift
cd "$(dirname "$0")/../../models" || exit 1
[ $# -gt 0 ] || set -- $(find . -name model.stan -exec dirname {} \; | sort)
status=0
for model in "$@"; do
    "$stanc" --warn-uninitialized --o=/dev/null "$model/model.stan" || { echo "failed: $model"; status=1; }
done
exit $status
