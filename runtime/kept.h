/* Memory of results, kept for the next ones: kept.c. */
#include <stddef.h>
PyObject *results_handler(void); /* for PyDataMem_SetHandler */
size_t results_kept(void);       /* bytes that are kept */
void results_release(void);      /* gives them back */
