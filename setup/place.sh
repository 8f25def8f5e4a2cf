#!/bin/bash
# Copy built files to where programs and tests find them: setup/place.sh FOLDER STAMP FILE…
# Each is renamed when it is complete. Man pages go to FOLDER/man, libraries to lib, the hook of OpenPBS to
# openpbs, other files to bin. Files that are not newer than their copy are skipped.
set -euo pipefail

readonly folder=$1 stamp=$2
shift 2
mkdir -p "$folder"/{bin,lib,man,openpbs}

for file; do
    name=${file##*/}
    case $name in
    *.so) to=$folder/lib ;;
    *.[18]) to=$folder/man ;;
    *.py) to=$folder/openpbs ;;
    *) to=$folder/bin ;;
    esac
    [[ ! $to/$name -nt $file ]] || continue
    cp "$file" "$to/.$name.new"
    mv -f "$to/.$name.new" "$to/$name"
done
touch "$stamp"
