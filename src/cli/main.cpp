#include "cli/entry.h"

int main(int argc, char** argv) {
  tandem::leave_program(tandem::enter_program({argv + 1, argv + argc}));
}
