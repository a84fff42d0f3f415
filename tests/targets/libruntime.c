/* A library that looks like a runtime which walks its own stacks, so that nothing guards the return
 * probes of its process. */
int JNI_CreateJavaVM(void) {
    return 7;
}
