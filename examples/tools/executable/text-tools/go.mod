module example.com/text-tools

go 1.21
