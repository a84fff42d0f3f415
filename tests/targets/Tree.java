/** Calls of methods whose numbers are known, in two threads, some of them left by an exception. */
public class Tree {
    static volatile int sink;

    static int leafOf(int n) {
        return n + sink;
    }

    static int middle(int n) {
        return leafOf(n) + leafOf(n + 1);
    }

    static void thrower(int n) {
        if (leafOf(n) >= 0) throw new IllegalStateException();
    }

    static void branch(int rounds) {
        for (int n = 0; n < rounds; n++) {
            sink = middle(n) & 7;
            try {
                thrower(n);
            } catch (IllegalStateException expected) {
                sink = 0;
            }
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        int rounds = Integer.parseInt(arguments[0]);
        Thread other = new Thread(() -> branch(rounds));
        other.start();
        branch(rounds);
        other.join();
        System.out.println("branch 2\nmiddle " + 2 * rounds + "\nthrower " + 2 * rounds + "\nleafOf " + 6 * rounds);
    }
}
