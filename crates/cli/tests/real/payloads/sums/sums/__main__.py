import sys

from . import Wrong, work_out


def main(arguments):
    try:
        print(work_out(" ".join(arguments)))
    except (Wrong, ZeroDivisionError) as wrong:
        print(f"sums: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
