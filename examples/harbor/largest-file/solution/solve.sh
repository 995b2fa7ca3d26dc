#!/bin/bash
cat > "$PROGRAM" <<'EOF'
find "$1" -maxdepth 1 -type f -printf '%s %f\n' | sort -rn | head -1 | cut -d ' ' -f 2-
EOF
