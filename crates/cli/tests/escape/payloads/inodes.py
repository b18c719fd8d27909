# Makes empty files, ARGV[1] of them at most, and says how many there are and why there are no more.
os.mkdir("/var/tmp/many")
count, why = 0, "none"
try:
    while count < int(sys.argv[1]):
        os.close(os.open(f"/var/tmp/many/{count}", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        count += 1
except OSError as error:
    why = errno.errorcode[error.errno]
print(f"files: {count}")
print(f"refusal: {why}")
