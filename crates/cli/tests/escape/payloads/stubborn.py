# A process that wants to stay: twice forked, in a session of its own, deaf to signals, and stopped.
def vanish():
    if os.fork():
        os._exit(0)


vanish()
os.setsid()
vanish()
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
null = os.open("/dev/null", os.O_RDWR)
for number in range(3):
    os.dup2(null, number)
if sys.argv[1:] == ["stopped"]:
    os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(120)
