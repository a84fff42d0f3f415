/* A coroutine and its caller take turns, each in the middle of functions. */
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
static ucontext_t a, b; static char stack[65536]; 
__attribute__((noinline)) void g_yield(int n){ printf("yield %d\n",n); swapcontext(&b,&a); }
__attribute__((noinline)) void g_body(int n){ for(int i=0;i<n;i++) g_yield(i); printf("body end\n"); }
static void start(void){ g_body(3); swapcontext(&b,&a);}
__attribute__((noinline)) int f_next(int n){ swapcontext(&a,&b); printf("next %d\n",n); return n+1; }
int main(){ getcontext(&b); b.uc_stack.ss_sp=stack; b.uc_stack.ss_size=sizeof stack; b.uc_link=&a; makecontext(&b,start,0);
 int n=0; for(int i=0;i<4;i++) n=f_next(n); printf("done %d\n",n); return 0; }
