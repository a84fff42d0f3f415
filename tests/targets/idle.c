/* Does nothing: what is counted in a library of it is not its own. Usage: idle [ARG...] */
int main(void) {
    return 0;
}
