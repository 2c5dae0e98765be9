static inline int tg_is_matrix(tensor_gmem *t) { return t->shape.dim == 2; }
static inline int tg_matrix_row(tensor_gmem *t) { return (int)t->shape.row; }
static inline int tg_matrix_col(tensor_gmem *t) { return (int)t->shape.col; }
