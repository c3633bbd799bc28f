using C;
using B;
