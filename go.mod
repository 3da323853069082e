module synchro

go 1.26
