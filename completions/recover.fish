command -q recover; and COMPLETE=fish recover | source
