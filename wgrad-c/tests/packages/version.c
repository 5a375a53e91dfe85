/* Prints the version of the library, as the smallest program. */
#include <stdio.h>
#include <wgrad.h>

int main(void) {
    printf("wgrad %s\n", wgrad_version());
    return 0;
}
