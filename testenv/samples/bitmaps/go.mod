module cidrella.dev/testenv/samples/bitmaps

go 1.26.0
